#include "store/redis/shared_limit.h"

#include <gtest/gtest.h>
