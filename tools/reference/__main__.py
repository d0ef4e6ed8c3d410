"""`python -m tools.reference`: writes every page that is not as the code says."""

import sys

from tools.reference import PAGES, ROOT


def main() -> int:
    for path, page in PAGES.items():
        text = page()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
