/* The parts of ward-init that know terminals. */
#ifndef WARD_GUEST_SESSION_H
#define WARD_GUEST_SESSION_H

#include <stdint.h>

/* In the process that becomes a command, with its 0-2 in place and every signal blocked: a session
 * of its own. On a terminal it returns in a child, in the foreground of that terminal, and the
 * caller stays behind as the session's leader until the command ends. tag is the command's, for
 * messages about it. */
void guest_session(uint32_t tag);

/* The keeper of the operator's terminal. */
_Noreturn void guest_keeper(void);

#endif
