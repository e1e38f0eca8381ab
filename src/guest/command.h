/* Executing a command, in ward-init and beside it. */
#ifndef WARD_GUEST_COMMAND_H
#define WARD_GUEST_COMMAND_H

#include <stddef.h>

#define GUEST_EXEC_STACK 49152

/* Executes; comes back with the errno to report. A name without a slash is looked for along PATH of
 * envp. */
long guest_exec_words(char **argv, size_t argc, char **envp);

#endif
