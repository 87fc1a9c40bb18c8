"""``python -m interp_lib``: see `interp_lib.command_line`."""

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main())
