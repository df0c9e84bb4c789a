"""``python -m neuralbayes``: the command line."""

import sys

from neuralbayes.cli import main

if __name__ == "__main__":
    sys.exit(main())
