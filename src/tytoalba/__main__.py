"""`python -m tytoalba`: the command `tyto`."""

from tytoalba.cli.app import main

if __name__ == "__main__":
    main()
