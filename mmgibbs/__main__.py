"""`python -m mmgibbs` is `mmgibbs`."""

import sys

from mmgibbs.cli import main

sys.exit(main())
