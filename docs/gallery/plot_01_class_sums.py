"""
Neurons swing to the class sums
===============================

x
"""

import reluflow as rf

print(rf.example("EX1"))
