"""The methods, by name. To add one: a file with a `Method`, and a line here; tables and tests pick it up."""

from __future__ import annotations

from tytoalba.methods.acil import Acil
from tytoalba.methods.dsal import DsAl
from tytoalba.methods.ewc import Ewc
from tytoalba.methods.finetune import FineTune
from tytoalba.methods.gkeal import Gkeal
from tytoalba.methods.icarl import ICarl
from tytoalba.methods.joint import Joint
from tytoalba.methods.lfl import LfL
from tytoalba.methods.lwf import LwF
from tytoalba.methods.method import Memory, Method, Task
from tytoalba.methods.mlp_gcc import MlpGcc
from tytoalba.methods.rmm import Rmm
from tytoalba.methods.srp_phat import SrpPhatMethod
from tytoalba.methods.ssil import SsIl
from tytoalba.methods.sslcil import SslCil, SslCilRandom
from tytoalba.methods.tyto import Tyto

METHODS: dict[str, type[Method]] = {
    "mlp-gcc": MlpGcc,
    "joint": Joint,
    "fine-tune": FineTune,
    "lwf": LwF,
    "ss-il": SsIl,
    "icarl": ICarl,
    "ewc": Ewc,
    "lfl": LfL,
    "rmm": Rmm,
    "srp-phat": SrpPhatMethod,
    "ssl-cil": SslCil,
    "ssl-cil-random": SslCilRandom,
    "tyto": Tyto,
    "acil": Acil,
    "ds-al": DsAl,
    "gkeal": Gkeal,
}

__all__ = ["METHODS", "Memory", "Method", "Task"]
