#include <cstddef>
#include <span>

#include "cli/start.h"

int main(int argc, char** argv) { return dhc::cli::start({argv, static_cast<std::size_t>(argc)}); }
