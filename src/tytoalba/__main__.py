"""`python -m tytoalba`: the command `tyto`."""

from tytoalba.cli import main

if __name__ == "__main__":
    main()
