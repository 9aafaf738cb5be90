"""How a file of another program was read: what it said, what it looked like, what was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guesses:
    """Every choice that was made in reading a file."""

    table: int = 1
    tables: tuple[str, ...] = ()  # each set of signals of equal length, in words
    columns: tuple[str, ...] = ()  # of the table, the times too
    time: str = ""
    separator: str = ""
    decimal: str = ""
    header: int = 0
    left_out: tuple[str, ...] = ()  # columns of words
    notes: tuple[str, ...] = ()  # whatever else was read otherwise than it stands there

    def words(self) -> list[str]:
        """One line for each guess."""
        found = [f"times in column {self.time}" if self.time else "no column of times"]
        if self.separator:
            line = f"titles in line {self.header}" if self.header else "no titles"
            found.append(f"separator {self.separator}, decimal {self.decimal}, {line}")
        found += [f"column {name} holds no numbers and is left out" for name in self.left_out]
        found += self.notes
        if len(self.tables) > 1:
            found.append(f"table {self.table} of {len(self.tables)}: {self.tables[self.table - 1]}")
        return found
