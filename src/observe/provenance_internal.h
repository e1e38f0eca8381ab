/* Shared by provenance.c, which learns, and provenance_tell.c, which tells. */
#ifndef WARD_OBSERVE_PROVENANCE_INTERNAL_H
#define WARD_OBSERVE_PROVENANCE_INTERNAL_H

#include "model/plan.h"
#include "observe/provenance.h"

#define PROCESSES_MAX 32768
#define FILES_MAX 65536
#define HOSTS_MAX 63 /* the last bit of a set stands for all others */
#define OTHER_HOSTS (UINT64_C(1) << HOSTS_MAX)
#define WRITERS_MAX 4    /* of one file; the first and the last ones */
#define SLOTS (1u << 17) /* of a table by hash; never more than half of them are used */
#define PROCESS_SLOTS 65536
#define PIPES_MAX 65536              /* those beyond are taken for one */
#define FILE_TEXT_MAX (16u << 20)    /* bytes of paths, which the sandbox chooses */
#define PROGRAM_TEXT_MAX (16u << 20) /* bytes of programs and their words, likewise */
#define READS_MAX 4096               /* paths that are reported as read */
#define NOBODY UINT32_MAX
#define ANYBODY PROCESSES_MAX /* the row of all processes that there was no room for */

/* A process as long as it runs one program or more. Never removed: files point at them. */
struct process {
	pid_t pid; /* outside */
	int inner, parent_inner;
	uint32_t parent; /* NOBODY: unknown, or ward-init */
	uint64_t hosts;  /* that it may have read from, as bits */
	/* what 0 and 1 were when it began a program: index + 1; 0: none */
	uint32_t in_pipe, out_pipe;
	uint32_t next_reader, previous_reader; /* of in_pipe: index + 1 */
	uint32_t next_slot; /* the one before whose number has the same slot: index + 1 */
	char *exe, *words;  /* owned; of its last program, its parent's where it began none */
	size_t words_len;
	bool stale; /* it has begun another program since that was read */
	bool proxy; /* it has spoken to one, or to another process on loopback */
	bool queued;
};

struct pipe {
	uint64_t inode;
	uint64_t hosts; /* that its writers may have read from */
	/* index + 1 of a process; 0: no process was seen to have it as input */
	uint32_t first_reader;
};

struct writer {
	uint32_t process;
	uint8_t change; /* enum observe_act */
	uint64_t seen_us;
	bool reported;
	uint64_t reported_hosts;
};

struct file {
	char *path; /* owned */
	struct writer writers[WRITERS_MAX];
	uint8_t writer_count;
	bool moved;   /* a process asked to rename or to remove it */
	bool within;  /* a writable tree of the host's: changes in it are reported */
	bool pending; /* something is still to be reported, or to be looked at again */
};

struct known_thread {
	pid_t tid;
	uint32_t process;
	uint64_t checked_ms;
};

struct provenance {
	const struct plan *plan;
	int upper_fd;
	bool wants_entropy; /* a watch rule counts files that look random */
	bool follows_hosts; /* audit.level: full: else it is unknown what a process has read */
	struct process *processes;
	uint32_t process_count;
	uint32_t *process_slots; /* of processes by number: index + 1 of the last one */
	struct pipe *pipes;
	uint32_t pipe_count;
	uint32_t *pipe_slots;
	uint32_t *queue; /* processes whose hosts have yet to go on */
	struct file *files;
	uint32_t file_count;
	uint32_t *slots; /* of files by path: index + 1 */
	struct known_thread threads[1024];
	char *hosts[HOSTS_MAX]; /* owned */
	unsigned host_count;
	struct synthetic {
		uint8_t address[16];
		uint8_t host; /* its bit */
	} * names;            /* owned */
	size_t name_count, name_cap;
	struct waiting { /* a connection to an address whose name is not known yet */
		uint8_t address[16];
		uint32_t process;
	} waiting[64];
	unsigned waiting_at;
	uint64_t proxied; /* hosts that were reached through a proxy */
	uint64_t reported_ms;
	uint64_t lost; /* files, processes and names that there was no room for */
	/* changes of files that were forgotten before they could be reported, and removals;
	 * reported as two numbers: a rule that counts must not become blind */
	uint64_t uncounted[2];
	size_t file_text, program_text; /* bytes that are kept */
	uint32_t tell_at;               /* the file to go on with */
	struct reads *reads;            /* provenance_reads.c; NULL: none yet; owned */
};

/* Whether the path is one that the host can look up: beneath a tree of its own that may be
 * written. */
bool provenance_within(const struct provenance *v, const char *path);
/* Whether nothing has that name now; false if that is unknown. */
bool provenance_is_missing(const struct provenance *v, const char *path);
/* Forgets files: those already reported, and all if those are few. The rest is counted. */
void provenance_forget(struct provenance *v);
/* A path was opened for reading by the process of that index. */
void provenance_read(struct provenance *v, const char *path, uint32_t process);
/* Reports the files that were read since the last time. */
void provenance_free_reads(struct provenance *v);
/* Lets what children wrote go to the parent that collects it. */
void provenance_spread(struct provenance *v);

#endif
