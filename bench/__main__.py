"""`python -m bench`: see the package's own words."""

import sys

from bench.harness.command import main

if __name__ == "__main__":
    sys.exit(main())
