/* ward when libward starts it. */
#ifndef WARD_CLI_BOX_PROGRAM_H
#define WARD_CLI_BOX_PROGRAM_H

/* The name that libward starts it under. */
#define BOX_PROGRAM "ward-box"

/* Takes the request from its socket and does it. Returns the exit code. */
int box_program(void);

#endif
