// Lets the sessions of a program use a pack that is linked in; digits.cc does not know of it.
#include "convgrad/cc/convgrad.h"
#include "digits.h"

CONVGRAD_USE_PACK(digits)
