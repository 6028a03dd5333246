"""`python -m daydream`: the program, as the command `daydream`."""

import os
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program", "bin", "daydream")
os.execv(program, ["daydream", *sys.argv[1:]])
