"""A sound plugin, and what its pieces may be instead, a line each: `\\n` stands for a new one, `OLD` for the piece."""

from __future__ import annotations

SOUND = """
import sys
import numpy as np
import ctxexp

class Model(ctxexp.Encoder):
    name, n_layers, dim = "odd", 2, 3
    def encode(self, batch):
        for s in batch:
            yield ctxexp.EncodedSentence(s.words, self.vectors(len(s.words)))
    def vectors(self, n):
        return np.random.default_rng(n).normal(size=(2, n, 3)).astype(np.float32)

class Measure(ctxexp.GroupMean):
    over = "word"
    def score(self, x):
        return np.ones(x.shape[:-2])

class Turn(ctxexp.Transform):
    def fit(self, x):
        return self
    def apply(self, x):
        return x.copy()

class Chance(ctxexp.Baseline):
    name = "odd"
    def groups(self, occurrences, rng):
        yield occurrences.distinct.rows[:8]

def data():
    return ctxexp.Corpus.of("odd", [["the", "bank", str(i)] for i in range(9)])

@ctxexp.hookimpl
def register_models(register):
    register("odd", Model)
@ctxexp.hookimpl
def register_metrics(register):
    register("odd", Measure)
@ctxexp.hookimpl
def register_transforms(register):
    register("odd", Turn)
@ctxexp.hookimpl
def register_baselines(register):
    register("odd", Chance)
@ctxexp.hookimpl
def register_datasets(register):
    register("odd", data)
"""

RAISES = """
sys.exit()
sys.exit('bye')
raise RecursionError
raise ValueError('a\\n' * 100000)
raise MemoryError
raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()
raise StopIteration
raise type('Odd', (BaseException,), {})()
(lambda f: f(f))(lambda f: f(f))
assert False
raise KeyError
raise OSError(5, 'odd')
"""

ODD = {
    "import sys": """
import sys\\n__name__ = None
import sys\\n__name__ = 'x' * 10000
""",
    'register("odd", Model)': """
register(None, Model)
register(5, Model)
register('', Model)
register('a/b', Model)
register('../x', Model)
register('a b', Model)
register('a=b', Model)
register('ü', Model)
register('x' * 9999, Model)
register('bert', Model)
register('???', Model)
register('null', Model)
register('a,b', Model)
register('[a]', Model)
register('a@b', Model)
register('${x}', Model)
register('odd', None)
register('odd', 5)
register('odd', 'Model')
register('odd', 'nope.mod:Enc')
register('odd', 'json:nope')
register('odd', 'json:__name__')
register('odd', [Model])
register('odd', Model())
register('odd', dict)
register('odd', print)
register('odd', len)
register('odd', sys)
register('odd', type)
register('odd', lambda x: x)
register('odd', lambda *a, **k: 5)
register('odd', lambda *, a=object(): Model())
register('odd', lambda *, a={1}: Model())
register('odd', lambda *, a=print: Model())
register('odd', lambda: None)
register('odd', lambda *, a=np.float32(1): Model())
register('odd', lambda *, a: Model())
register('odd', int)
register('odd', object)
register()
register('odd')
register('odd', Model, 5)
return 5
""",
    "yield ctxexp.EncodedSentence(s.words, self.vectors(len(s.words)))": """
pass
return
yield None
yield 5
yield s
while True: OLD
OLD\\n            OLD
yield (s.words, self.vectors(len(s.words)))
yield ctxexp.EncodedSentence(None, self.vectors(3))
yield ctxexp.EncodedSentence([1, 2, 3], self.vectors(3))
yield ctxexp.EncodedSentence(('x',) * 3, self.vectors(3))
break
""",
    "return np.ones(x.shape[:-2])": """
return None
return 'x'
return x
return np.full(x.shape[:-2], np.nan)
return 5
x[...] = 0
return np.full(x.shape[:-2], np.inf)
return np.ones(3, object)
return [1]
OLD * 1j
""",
    "return self": """
return None
return 5
x[...] = 0; return self
""",
    "return x.copy()": """
return None
return x[:1]
return x * np.nan
return x.astype(float)
return x.tolist()
""",
    'return ctxexp.Corpus.of("odd", ': """
return ctxexp.Corpus.of("a\\udc80",
return 5 or (
return [['a']] or (
return 'x' or (
""",
    "def register_models(register)": """
def register_models(registrar)
def register_models()
""",
    "def register_models": """
def register_modles
""",
    "@ctxexp.hookimpl\ndef register_models": """
def register_models
""",
    "@ctxexp.hookimpl\ndef register_models(register)": """
register_models = 5\\ndef other(register)
""",
    "class Model(ctxexp.Encoder):": """
class Model(ctxexp.Encoder):\\n    __doc__ = 5
class Model(ctxexp.Encoder):\\n    __doc__ = None
class Model(ctxexp.Encoder):\\n    __doc__ = 'x' * 100000
class Model(ctxexp.Encoder):\\n    __doc__ = b'x'
class Model(ctxexp.Encoder):\\n    def __init__(self, *, a: 'Nowhere' = 3): pass
class Model(ctxexp.Encoder):\\n    def __init__(self, a, /): pass
class Model(ctxexp.Encoder):\\n    def __init__(self): sys.exit(3)
class Model(ctxexp.Encoder):\\n    __slots__ = 5
""",
    'name, n_layers, dim = "odd", 2, 3': """
name, n_layers, dim = "odd", 0, 3
name = "odd"
name, n_layers, dim = "", 2, 3
name, n_layers, dim = None, 2, 3
name, n_layers, dim = "a\\udc80", 2, 3
name, n_layers, dim = "odd", "2", 3
name, n_layers, dim = "odd", -2, 3
name, n_layers, dim = "odd", 2, 0
name, n_layers, dim = "odd", 2.0, 3
name, n_layers, dim = "odd", 10**9, 10**9
name, n_layers, dim = "a/../b" * 999, 2, 3
name, n_layers, dim = [], 2, 3
n_layers, dim = 2, 3\\n    @property\\n    def name(self): sys.exit()
name, n_layers, dim = "odd", 3, 3
name, n_layers, dim, lengths = "odd", 2, 3, 5
name, n_layers, dim, details = "odd", 2, 3, 5
name, n_layers, dim, sequential = "odd", 2, 3, "x"
name, n_layers, dim, sentences = "odd", 2, 3, 5
name, n_layers, dim, dtype = "odd", 2, 3, 5
name, n_layers, dim, tables = "odd", 2, 3, 5
OLD\\n    def lengths(self, s): sys.exit()
OLD\\n    def lengths(self, s): return ["a"]
OLD\\n    def lengths(self, s): return [-1 for _ in s]
""",
    "np.random.default_rng(n).normal(size=(2, n, 3)).astype(np.float32)": """
OLD[:1]
OLD[:, :-1]
OLD[..., 0]
OLD * np.nan
None
OLD.astype(np.float64)
OLD.astype(object)
OLD.astype(int)
OLD.tolist()
5
'x'
OLD + np.inf
OLD.astype('>f4')
OLD.astype(complex)
np.array('x')
OLD * 1e30 * 1e30
""",
    "        for s in batch:": """
        return None\\nOLD
        for s in 5:
""",
    'over = "word"': """
over = "wrod"
over = None
over = 5
sample = -1
sample = 'x'
unit = 5
OLD\\n    def __init__(self): pass
OLD\\n    def compute(self): return 5
definition = 5
OLD\\n    def compute(self): return {"a": "b"}
OLD\\n    def compute(self): return {5: 1.0}
OLD\\n    def compute(self): return {"../../x": 1.0}
OLD\\n    def update(self, group): sys.exit()
""",
    'register("odd", Measure)': """
register('odd', lambda: 5)
register('odd', dict)
register('odd', ctxexp.GroupMean)
""",
    'register("odd", Turn)': """
register('odd', lambda: 5)
register('odd', lambda: None)
""",
    "yield occurrences.distinct.rows[:8]": """
while True: OLD
pass
yield None
yield [10**9]
yield [-1.5]
yield ['x']
yield []
yield np.zeros((2, 2))
return 5
yield 5
""",
}
