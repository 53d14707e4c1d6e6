#include "syncopate/emulation/lab.h"
