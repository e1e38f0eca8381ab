/* sudo inside of sandboxes: another name of a sandbox's one user, and no rights. */
#ifndef WARD_ENVD_SUDO_H
#define WARD_ENVD_SUDO_H

#define SUDO_NAME "sudo" /* under which ward-envd is this */

/* Returns only if the command was not executed: the exit code. */
int sudo_main(int argc, char **argv);

#endif
