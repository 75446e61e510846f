#include "lemma/language/language.h"
#include <gtest/gtest.h>
#include <cstdio>
