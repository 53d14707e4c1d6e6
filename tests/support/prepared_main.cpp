// Chooses the products' kernels as `syncopate` does. Programs whose tests start it again and again save half
// of its start-up time: prepared once here, it need not start itself a second time.
#include "syncopate/run/compute.h"
#include "tests/support/run_tests.h"

int main(int argc, char** argv) {
  syncopate::run::prepare_process(argv);
  return syncopate::test::run_tests(argc, argv);
}
