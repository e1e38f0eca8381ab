/* The request of a stand-in (protocol/command.h). */
#ifndef WARD_APPROVE_COMMAND_READ_H
#define WARD_APPROVE_COMMAND_READ_H

#include <stdint.h>

#include "protocol/command.h"
#include "rules/command_rule.h"

/* Reads a request, whose bytes *ret points into. False: it is none, or has a variable that is not
 * passed on. A pure function over untrusted bytes. */
bool command_read(const uint8_t *bytes, size_t n, struct command_said *ret);

#endif
