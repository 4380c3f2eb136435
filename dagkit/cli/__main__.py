"""`python -m dagkit.cli` is `dagkit`."""

from dagkit.cli.group import main

if __name__ == "__main__":
    main(prog_name="dagkit")
