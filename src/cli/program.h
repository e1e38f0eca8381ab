/* Programs of ward's own that lie beside it: ward-NAME. */
#ifndef WARD_CLI_PROGRAM_H
#define WARD_CLI_PROGRAM_H

#include "base/own.h"

/* Runs ward-NAME (argv[0]), which stands beside this program or in ../libexec/ward, with nothing
 * but /dev/null and waits for its end. Its exit status, or -errno. */
must_check int program_run(char *const *argv);

#endif
