/* Parts of ward evidence: an archive with a list of digests. */
#ifndef WARD_CLI_EVIDENCE_H
#define WARD_CLI_EVIDENCE_H

#include "base/buf.h"
#include "base/sha256.h"

#define EVIDENCE_FILE_MAX (64u << 20)   /* of one file; a longer one is cut */
#define EVIDENCE_TOTAL_MAX (512u << 20) /* of all */
#define EVIDENCE_LIST_MAX (64u << 20)   /* of the manifest; what is beyond is counted */

struct archive {
	int fd; /* borrowed */
	uint64_t time_s, bytes;
	struct sha256 digest;
	/* "DIGEST  BYTES  NAME" a line; of a name that the format has no room for, the member's
	 * behind which "  for NAME" stands */
	struct buf manifest;
	uint64_t unlisted; /* left out, and not in the manifest */
	bool full;         /* EVIDENCE_TOTAL_MAX is reached */
	bool partial;      /* something could not be read */
};

/* One member with that content, whatever there is already. */
must_check int archive_put(struct archive *a, const char *name, const void *bytes, size_t n,
			   struct ward_err *e);
/* The same, if it fits in EVIDENCE_TOTAL_MAX; else it is only listed. */
must_check int archive_add(struct archive *a, const char *name, const void *bytes, size_t n,
			   struct ward_err *e);
/* The content of a file that may be special, vanish or grow; what cannot be read is a member with
 * the reason. */
must_check int archive_add_file(struct archive *a, const char *name, int dir_fd, const char *path,
				struct ward_err *e);
/* The manifest as the last member, and the end; the digest of the whole archive. */
must_check int archive_end(struct archive *a, char ret_hex[SHA256_HEX], struct ward_err *e);

/* Everything that lives in the sandbox of that supervisor, from outside. */
must_check int evidence_processes(struct archive *a, pid_t supervisor, struct ward_err *e);
/* What has changed since in the directories that the sandbox can write. A directory that cannot be
 * read is reported, and no reason to end. */
must_check int evidence_files(struct archive *a, const struct strv *dirs, uint64_t since_ms,
			      struct ward_err *e);

#endif
