#include "tests/support/run_tests.h"

int main(int argc, char** argv) { return syncopate::test::run_tests(argc, argv); }
