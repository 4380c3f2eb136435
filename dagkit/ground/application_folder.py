"""The files and folders that dagkit keeps in the folder of an application. No scan reads it as input."""

LEDGER = "ledger/ledger.json"
"""The file by which a folder is recognised as that of an application."""
OWN_FOLDERS = (
    *("ledger", "heads", "logs", "requests", "answers", "staging", "finishing", "finished", "receipts", "began"),
    *("withdrawn", "gzip-indexes", "frames"),
)
OWN_FILES = ("status.json", "running.json", "launched.json", "restart.json", "console.json")
OWN = frozenset((*OWN_FOLDERS, *OWN_FILES))
"""The names in the folder of an application that dagkit makes, beside hidden ones."""
