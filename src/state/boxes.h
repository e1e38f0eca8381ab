/* The register of detached sandboxes: which exist, their names, how they ended. */
#ifndef WARD_STATE_BOXES_H
#define WARD_STATE_BOXES_H

#include <sys/types.h>

#include "model/result.h"

#define BOX_NAME_MAX 63
#define BOX_LIST_MAX 100000 /* entries that a listing looks at */

/* As it stands in the register; the letters are the file's. */
enum box_state {
	BOX_RUNNING = 'R',
	BOX_PAUSED = 'P',
	BOX_ENDING = 'F',
	BOX_ENDED = 'E',
	BOX_DEAD = 'D'
};

/* One detached sandbox. */
struct box_info {
	char id[24];
	char name[BOX_NAME_MAX + 1]; /* "": none */
	enum box_state state;        /* BOX_DEAD: its supervisor was killed */
	bool alive;                  /* its supervisor lives */
	bool recovered;              /* BOX_DEAD: what it left was cleaned up */
	/* a ward run in the foreground (runs.h); only the id is known */
	bool foreground;
	char parent[24]; /* the run that started it as its child; "": none */
	pid_t pid;       /* of ward-box */
	/* and when that was started, which no other process of this number has */
	uint64_t pid_start;
	uint64_t started_ms, ended_ms; /* of the wall clock; ended_ms 0: not known */
	int exit_code, exit_signal;    /* BOX_ENDED */
	char *workspace;               /* owned */
	/* directories of the host that the sandbox can write: the workspace, and what was given
	 * so */
	struct strv writable;
	struct strv protect; /* the policy's own protected names */
	struct strv command; /* cut off when long; empty: idle */
};

struct boxes {
	struct box_info *items;
	size_t len;
};

/* What ward-box holds of its own entry. */
struct box_entry {
	int dir_fd;  /* its directory in the state: info, log, result.json; -1: none */
	int run_fd;  /* its directory in the runtime: the control socket */
	int info_fd; /* locked as long as ward-box lives */
	char id[24];
};
#define NO_BOX_ENTRY ((struct box_entry){ .dir_fd = -1, .run_fd = -1, .info_fd = -1 })

/* Whether a sandbox may be called so: [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}. A pure function. */
bool boxes_is_name(const char *name);
/* Reads an entry's text. A pure function; 0 or -EINVAL. The caller clears *ret_info with
 * box_info_clear(). */
must_check int boxes_parse(const char *text, size_t n, struct box_info *ret_info);
void box_info_clear(struct box_info *i);
void boxes_clear(struct boxes *v);

/* Enters a sandbox that is about to start. name: NULL for none; a living one of that name is
 * refused, and so is a runtime directory that the sandbox could see. */
must_check int boxes_enter(const struct plan *p, const char *name, struct box_entry *ret_entry,
			   struct ward_err *e);
void boxes_set_state(const struct box_entry *entry, enum box_state state);
/* The sandbox has ended: its report and how. The entry stays until it is removed. */
must_check int boxes_ended(const struct box_entry *entry, const struct result *r,
			   const struct buf *report, struct ward_err *e);
/* It never began: nothing stays. */
void boxes_discard(struct box_entry *entry);
void box_entry_close(struct box_entry *entry);

/* All of them, oldest first. */
must_check int boxes_list(struct boxes *ret_boxes, struct ward_err *e);
/* The one that word names: its name (the living one, else the last), its id, or an unambiguous
 * beginning of the id or of its last part. The caller clears with box_info_clear(). */
must_check int boxes_find(const char *word, struct box_info *ret_info, struct ward_err *e);
/* The same in a list. */
must_check int boxes_find_in(struct boxes *all, const char *word, struct box_info *ret_info,
			     struct ward_err *e);
/* Looks again at one. */
must_check int boxes_look(const char *id, struct box_info *ret_info, struct ward_err *e);
/* Opens the entry's directory in the state. */
must_check int boxes_open_dir(const char *id, struct ward_err *e);
/* Removes what a sandbox that is not alive left: log, result, entry, socket. */
must_check int boxes_remove(const char *id, struct ward_err *e);
/* Marks one whose supervisor was killed as cleaned up. */
void boxes_mark_dead(const char *id);
/* Removes what a ward-box that was killed while it made its entry left. */
void boxes_drop_orphans(void);
/* Removes the oldest of those that have ended, beyond a number and an age. */
void boxes_prune(void);

const char *box_state_name(enum box_state s); /* running paused ending ended dead */

#endif
