#pragma once

namespace syncopate::test {

/// Runs the tests and returns the program's exit code. A skip that tests/allowed_skips.txt does not list is a
/// failure, and so is a filter that no test matches.
int run_tests(int argc, char** argv);

}  // namespace syncopate::test
