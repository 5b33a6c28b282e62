"""The methods, by name. To add one: a file with a `Method`, and a line here; tables and tests pick it up."""

from __future__ import annotations

from tytoalba.learning.method import Method
from tytoalba.learning.methods.acil import Acil
from tytoalba.learning.methods.dsal import DsAl
from tytoalba.learning.methods.ewc import Ewc
from tytoalba.learning.methods.finetune import FineTune, MlpGcc
from tytoalba.learning.methods.gkeal import Gkeal
from tytoalba.learning.methods.icarl import ICarl
from tytoalba.learning.methods.joint import Joint
from tytoalba.learning.methods.lfl import LfL
from tytoalba.learning.methods.lwf import LwF
from tytoalba.learning.methods.replay import Replay
from tytoalba.learning.methods.srp_phat import SrpPhatMethod
from tytoalba.learning.methods.ssil import SsIl
from tytoalba.learning.methods.sslcil import SslCil, SslCilRandom
from tytoalba.learning.tyto import Tyto

METHODS: dict[str, type[Method]] = {
    "mlp-gcc": MlpGcc,
    "joint": Joint,
    "fine-tune": FineTune,
    "lwf": LwF,
    "ss-il": SsIl,
    "icarl": ICarl,
    "ewc": Ewc,
    "lfl": LfL,
    "replay": Replay,
    "srp-phat": SrpPhatMethod,
    "ssl-cil": SslCil,
    "ssl-cil-random": SslCilRandom,
    "tyto": Tyto,
    "acil": Acil,
    "ds-al": DsAl,
    "gkeal": Gkeal,
}
