"""`python -m dagkit.cli` is `dagkit`."""

from dagkit.cli.verbs import main

if __name__ == "__main__":
    main(prog_name="dagkit")
