"""What a cluster is: columns, differences, rules, typical rows, key phrases and names, from arrays and labels alone."""

import lazy_loader as _lazy

# The names are those of __init__.pyi; each is imported when first asked for.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
