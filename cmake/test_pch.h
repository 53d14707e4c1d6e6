#pragma once
#include <gtest/gtest.h>

#include "paper_pch.h"
