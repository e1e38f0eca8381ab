/* What a policy says, typed: one member per row of tables/policy.def. */
#ifndef WARD_POLICY_POLICY_H
#define WARD_POLICY_POLICY_H

#include <stdint.h>

#include "base/buf.h"

struct node;

#define POLICY_NONE UINT64_MAX /* "none": no limit */
/* a MEMORY value: the rest is a share of the machine's in percent */
#define POLICY_PERCENT (UINT64_C(1) << 63)

struct policy_mount {
	char *path; /* as written */
	char *at;   /* NULL: same path */
	bool writable;
};

struct policy_mounts {
	struct policy_mount *items;
	size_t len;
};

/* How each TYPE of the table is held. */
#define POLICY_C_STRING char *
#define POLICY_C_ENUM unsigned /* index into the values of the row */
#define POLICY_C_BOOL bool
#define POLICY_C_UINT uint64_t
#define POLICY_C_SIZE uint64_t    /* bytes */
#define POLICY_C_MEMORY uint64_t  /* bytes, or POLICY_PERCENT | share */
#define POLICY_C_CPUS uint64_t    /* thousandths of a processor */
#define POLICY_C_SECONDS uint64_t /* milliseconds */
#define POLICY_C_MONEY uint64_t   /* millionths */
#define POLICY_C_STRINGS struct strv
#define POLICY_C_ENUMS struct strv
#define POLICY_C_MOUNTS struct policy_mounts
#define POLICY_C_INGRESS struct strv    /* empty: deny_all */
#define POLICY_C_GPUS struct strv       /* empty: none; "all", or numbers */
#define POLICY_C_TOOLCHAINS struct strv /* empty: none; "auto", names of presets */
/* each rule as one line of canonical JSON; likewise below */
#define POLICY_C_RULES struct strv
#define POLICY_C_GRANTS struct strv
#define POLICY_C_SSH struct strv
#define POLICY_C_COMMANDS struct strv /* "allow PATTERN", "ask PATTERN", "deny PATTERN" */
#define POLICY_C_SINKS struct strv
#define POLICY_C_PRICES struct strv
#define POLICY_C_WATCH struct strv
#define POLICY_C_LABELS struct strv
#define POLICY_C_CHANNELS struct strv

enum policy_field {
#define FIELD(path, member, type, ...) POLICY_F_##member,
#include "policy.def"
	POLICY_FIELDS
};

/* Who said a value; later ones override earlier ones. */
enum policy_source { POLICY_DEFAULT, POLICY_USER, POLICY_PROFILE, POLICY_FILE, POLICY_CLI };

struct policy_origin {
	enum policy_source source;
	unsigned line, column; /* in the file, 0 elsewhere */
	unsigned file;         /* the policy's `file` when it was read: which of several it is */
};

struct policy {
#define FIELD(path, member, type, ...) POLICY_C_##type member;
#include "policy.def"
	struct policy_origin origin[POLICY_FIELDS];
	unsigned file; /* what policy_read() notes in the origin of what it sets; the caller's */
};

/* Values of ENUM rows that code asks for, in the order of the table. */
enum { FS_MODE_READ_ONLY, FS_MODE_REVIEW, FS_MODE_READ_WRITE };
enum { TERMINAL_CLEAN, TERMINAL_RAW };
enum { NET_MODE_NONE, NET_MODE_RESTRICTED, NET_MODE_OPEN };
enum { CANARY_LOG, CANARY_FREEZE, CANARY_KILL };
enum { APPROVALS_DENY, APPROVALS_ASK };
enum { UNPRICED_REFUSE, UNPRICED_DEAREST, UNPRICED_FREE };
enum { CRED_MODE_NONE, CRED_MODE_JUST_IN_TIME };
enum { LEAKS_BLOCK, LEAKS_STRIP, LEAKS_LOG };
/* credentials.scan_*, and of scan_workspace */
enum { SCAN_BLOCK, SCAN_REDACT, SCAN_LOG, SCAN_AUTO, SCAN_OFF };
enum { SCAN_TREE_BLOCK, SCAN_TREE_LOG, SCAN_TREE_AUTO, SCAN_TREE_OFF };
/* What is done in that place: SCAN_AUTO is decided. */
#define SCAN_MODE(policy, value)                                                                   \
	((unsigned)(value) != SCAN_AUTO ? (unsigned)(value)                                        \
	 : (policy)->cred_scanning      ? SCAN_LOG                                                 \
					: SCAN_OFF)
#define SCAN_MODE_TREE(policy)                                                                     \
	((unsigned)(policy)->cred_scan_workspace != SCAN_TREE_AUTO                                 \
		 ? (unsigned)(policy)->cred_scan_workspace                                         \
	 : (policy)->cred_scanning ? SCAN_TREE_LOG                                                 \
				   : SCAN_TREE_OFF)
enum { AUDIT_FULL, AUDIT_WRITES, AUDIT_EXEC, AUDIT_BASIC };
enum { JOURNAL_DEFAULT, JOURNAL_NONE };
enum { ON_FULL_STOP, ON_FULL_CONTINUE };
enum { GVISOR_AUTO, GVISOR_SYSTRAP, GVISOR_PTRACE, GVISOR_KVM };
enum { SYSCALLS_STRICT, SYSCALLS_DEFAULT, SYSCALLS_BUILD };
enum { VM_ACCEL_KVM, VM_ACCEL_TCG };
enum { REQUIRE_LANDLOCK, REQUIRE_NAMESPACES, REQUIRE_GVISOR, REQUIRE_VM };
enum { REQUIRE_LIMITS_NONE, REQUIRE_LIMITS_WATCH, REQUIRE_LIMITS_CGROUP };

/* Several errors at once, each "FILE:LINE:COLUMN: what was expected" and the like. */
struct policy_errors {
	struct strv lines;
};

/* Fills p with the built-in defaults; p owns what it holds until policy_clear(). */
must_check int policy_defaults(struct policy *p, struct ward_err *e);
void policy_clear(struct policy *p);

/* Reads a YAML or JSON document over what p holds already. name is for messages. All errors are
 * gathered in *errors; returns 0, or -EINVAL when there is any. Pure: no file, clock or global is
 * touched. */
must_check int policy_read(struct policy *p, const char *name, const uint8_t *bytes, size_t n,
			   enum policy_source source, struct policy_errors *errors);

/* Sets one field from text as --set and options give it ("resources.pids_limit", "64"; lists: YAML
 * flow syntax or one entry that is appended when append is true). -EINVAL with *e (nearest name in
 * the remedy). */
must_check int policy_set(struct policy *p, const char *field, const char *value, bool append,
			  enum policy_source source, struct ward_err *e);

/* Appends to *wider "field: old -> new" for each field in which p allows more than base. A share of
 * memory and an amount cannot be compared without the machine: that counts as wider. Returns their
 * count or -errno. */
must_check int policy_compare(const struct policy *base, const struct policy *p,
			      struct strv *wider);
/* The same for a machine with memory_bytes of memory (0: unknown), which shares are taken of. */
must_check int policy_compare_on(const struct policy *base, const struct policy *p,
				 uint64_t memory_bytes, struct strv *wider);
/* Whether p allows more than base in this one field. */
bool policy_field_widens(const struct policy *base, const struct policy *p, enum policy_field field,
			 uint64_t memory_bytes);

/* Appends to *lines one "FIELD: VALUE is not yet supported by this build" for each such value.
 * Returns their count. */
must_check int policy_unsupported(const struct policy *p, struct strv *lines);

/* Copies src into dst (which must be empty). */
must_check int policy_copy(struct policy *dst, const struct policy *src, struct ward_err *e);

/* A field's value as it would be written in a document, on one line; the caller frees. */
must_check char *policy_text(const struct policy *p, enum policy_field field);

/* What a field of `to` changes in one of `from`, on one line: "FIELD: OLD -> NEW", or for a list
 * "FIELD: adds A, B; drops C". The caller frees. Pure. */
must_check char *policy_difference(const struct policy *from, const struct policy *to,
				   enum policy_field field);

/* Appends the policy as a document that says every field but those that it builds on, and those
 * that leaves_out() (NULL: none) names by row and value. */
void policy_document(const struct policy *p,
		     bool (*leaves_out)(const char *path, const char *fallback, const char *text),
		     struct buf *out);

/* A row of the table, for generators of help and for messages. The texts lie in place: pointers in
 * a table would have to be relocated at every start. */
struct policy_row {
	char path[28], type[12], values[36], fallback[112], narrow[8], later[24], help[120];
};
const struct policy_row *policy_row(enum policy_field field);
/* The name of an ENUM row's value. Static text. */
const char *policy_enum_name(enum policy_field field, unsigned index);

#endif
