"""The rows of the chaos benchmark, one line a record, then the summary."""

from benchmarks.chaos import main

if __name__ == "__main__":
    main()
