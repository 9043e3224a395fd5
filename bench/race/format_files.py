"""Files with the same tensors in every format, made when they are first asked for."""

from . import packages
from .rounds import Unable


class FormatFiles:
    """A folder of them. A format's own package writes its files; where it is not installed, Thalia."""

    def __init__(self, folder, tensors, settle):
        """`tensors` has functions, by the stems of the files, that give NumPy arrays by name."""
        self.folder = folder
        self._tensors = tensors
        self._settle = settle
        self._arrays = {}
        self._packages = {}
        self._missing = {}
        for kind in packages.ALL:
            try:
                self._packages[kind.name] = kind()
            except ImportError as error:
                self._missing[kind.name] = f"not installed: {error}"

    def package(self, format):
        """@raise Unable where it is not installed."""
        if format in self._missing:
            raise Unable(self._missing[format])
        return self._packages[format]

    def ways(self, format, kind):
        """The package's ways to read, `loads` or `finds`; without it, one that says so."""
        if format in self._packages:
            return getattr(self._packages[format], kind)
        return {f"the package of {format}": lambda *_: self.package(format)}

    def arrays(self, stem):
        if stem not in self._arrays:
            self._arrays[stem] = self._tensors[stem]()
        return self._arrays[stem]

    def path(self, stem, format):
        return self.folder / f"{stem}.{format}"

    def file(self, stem, format):
        """The path of a file that is there."""
        path = self.path(stem, format)
        if not path.exists():
            if format in self._packages:
                self._packages[format].write(self.arrays(stem), path)
            else:
                self._write(self.arrays(stem), path)
            self._settle()
        return path

    def _write(self, arrays, path):
        import thalia_checkpoint
        import thalia_checkpoint.numpy

        between = path.with_suffix(".thalia")
        thalia_checkpoint.numpy.save_file(arrays, between)
        thalia_checkpoint.convert(between, path)
        between.unlink()
