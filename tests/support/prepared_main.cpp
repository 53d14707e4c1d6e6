// For programs whose tests start `syncopate` again and again: prepared once here, those need not start
// themselves a second time, which is half of their start-up time.
#include "syncopate/run/compute.h"
#include "tests/support/run_tests.h"

int main(int argc, char** argv) {
  syncopate::run::prepare_process(argv);
  return syncopate::test::run_tests(argc, argv);
}
