"""``python -m reluflow`` is the command ``reluflow``."""

from .cli import main

if __name__ == "__main__":
    main()
