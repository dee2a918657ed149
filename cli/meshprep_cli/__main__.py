"""``python -m meshprep_cli``: the program where its script is not on the path."""

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
