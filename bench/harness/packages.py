"""Packages that only some benches need."""

from importlib.util import find_spec


class PackageMissing(ImportError):
    """A bench needs a package that is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"this bench needs the package {package}: pip install 'headway[bench]'", name=package
        )


def need(*packages: str) -> None:
    """See that these are installed before anything is measured."""
    for package in packages:
        if find_spec(package.replace("-", "_")) is None:
            raise PackageMissing(package)
