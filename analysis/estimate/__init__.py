"""Parameters from records: the methods, their common finish, selection and identifiability."""
