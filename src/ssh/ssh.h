/* The parts of ward-ssh-agent. */
#ifndef WARD_SSH_SSH_H
#define WARD_SSH_SSH_H

#include <stdbool.h>

#include "base/buf.h"
#include "policy/policy_ssh.h"
#include "rules/ssh_wire.h"

#define KEYS_MAX 64          /* of all agents together */
#define HOST_KEYS_MAX 256    /* of all hosts together */
#define FINGERPRINT_BYTES 52 /* SHA256: and 43 letters, a NUL */
#define GPG_KEYS_MAX 8
#define GPG_NAMES_MAX 16 /* of a key: itself and its subkeys */
#define GPG_ID_BYTES 41  /* 40 digits, a NUL */

/* A key that may sign: whose entries name it, and which agent has it. */
struct agent_key {
	uint8_t *blob; /* owned */
	size_t len;
	char fingerprint[FINGERPRINT_BYTES];
	int agent_fd;     /* borrowed */
	uint32_t entries; /* bit i: entry i of the policy names it */
};

/* A key of a host that some entry names. */
struct agent_host_key {
	uint8_t *blob; /* owned */
	size_t len;
	unsigned host; /* in hosts[] */
};

struct agent_host {
	struct ssh_host host;
	unsigned entry;
};

/* A gpg key that signs commits. */
struct agent_gpg {
	char names[GPG_NAMES_MAX][GPG_ID_BYTES]; /* fingerprints: the policy's, then the others */
	size_t name_count;
};

/* All that the serving process decides by; constant once it serves. */
struct agent {
	struct policy_ssh entries[SSH_ENTRIES_MAX];
	size_t entry_count;
	struct agent_host hosts[SSH_HOSTS_MAX];
	size_t host_count;
	struct agent_host_key host_keys[HOST_KEYS_MAX];
	size_t host_key_count;
	struct agent_key keys[KEYS_MAX];
	size_t key_count;
	int user_fd;         /* the user's own agent; -1: not asked for */
	struct buf known;    /* known_hosts of the sandbox */
	struct buf signs_as; /* the public key of commits, as in authorized_keys; empty: none */
	int hold_fds[SSH_ENTRIES_MAX]; /* an agent of ward's own lives until this is closed */
	size_t hold_count;
	struct strv gpg_wanted; /* fingerprints of the policy */
	struct agent_gpg gpg[GPG_KEYS_MAX];
	size_t gpg_count;
	int gpg_fd; /* of the serving process: to the one that runs gpg */
};

/* keys.c: finds the keys of all entries. */
must_check int agent_find_keys(struct agent *a, struct ward_err *e);
/* hosts.c: finds the keys of all hosts in the user's known_hosts. */
must_check int agent_find_hosts(struct agent *a, struct ward_err *e);
/* Sends one message to an agent and reads its answer into *ret (without its length). -errno. */
must_check int agent_ask(int fd, const uint8_t *bytes, size_t n, struct buf *ret);
/* hold.c: `ward-ssh-agent hold FILE`, the command of an agent of ward's own. Does not come back. */
__attribute__((noreturn)) void agent_hold(const char *path);
/* gpg.c: adds the user's key with this fingerprint. */
must_check int agent_find_gpg(struct agent *a, const char *fingerprint, struct ward_err *e);
/* Writes the public keys to a file "gpg_keys" in SSH_FD_DIR. */
must_check int agent_export_gpg(const struct agent *a, struct ward_err *e);
/* Answers one request of the serving process on fd: the number of a key as a byte, and what to
 * sign. The answer is '+' and an armored signature, '-', or 't' after too long a time. -EPIPE: that
 * process or the supervisor is gone. */
must_check int agent_run_gpg(const struct agent *a, int fd);
/* Reads one message with its length in front, of at most max bytes. -errno. */
must_check int agent_read(int fd, struct buf *ret, size_t max, uint64_t until_ms);
/* serve.c: answers programs inside until the supervisor is gone. */
void agent_serve(const struct agent *a);
/* verify.c: whether the host key has made the signature of these bytes. */
bool agent_verify(struct ssh_span key, struct ssh_span signature, struct ssh_span bytes);

#endif
