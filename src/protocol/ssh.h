/* Between the supervisor and ward-ssh-agent: a socket of whole messages. */
#ifndef WARD_PROTOCOL_SSH_H
#define WARD_PROTOCOL_SSH_H

#include <stdint.h>

#define SSH_FD_CONTROL 3 /* the supervisor's messages */
#define SSH_FD_LISTEN 4  /* the socket that programs inside connect to */
#define SSH_FD_DIR 5     /* a directory for sockets; the program makes and removes its own there */

#define SSH_SAID_MAX (128 * 1024)

enum ssh_op {
	/* to ward-ssh-agent */
	SSH_ENTRY = 1, /* a line of credentials.ssh */
	SSH_GPG,       /* a fingerprint of credentials.gpg */
	SSH_BEGIN,     /* all of them were sent */
	/* from it; with SSH_GPG, the public keys are then in "gpg_keys" in SSH_FD_DIR */
	SSH_READY, /* the sandbox's known_hosts, NUL, the public key that signs or "", NUL */
	SSH_ERROR, /* code: errno; what, why, remedy, each with a NUL */
	SSH_EVENT  /* struct ssh_event */
};

struct ssh_said {
	uint32_t op;
	int32_t code;
};

/* One signature, made or refused. */
struct ssh_event {
	uint32_t allowed;
	uint32_t gpg;   /* with a gpg key */
	uint32_t lost;  /* events before this one that were not sent */
	char key[64];   /* SHA256:... or 40 digits, "": no key was named that is known */
	char host[340]; /* USER@HOST of a login, "git" for a commit or tag, "": neither */
	char detail[120];
};

#endif
