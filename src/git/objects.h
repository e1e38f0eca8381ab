/* Objects of the sandbox's that the host does not have. */
#ifndef WARD_GIT_OBJECTS_H
#define WARD_GIT_OBJECTS_H

#include "git/git.h"

/* Faults that old and harmless histories have; all others make git refuse the objects. */
#define STRICT                                                                                     \
	"--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,"     \
	"missingEmail=ignore,badEmail=ignore,"                                                     \
	"missingNameBeforeEmail=ignore,badName=ignore,missingSpaceBeforeEmail=ignore,"             \
	"zeroPaddedDate=ignore,badDate=ignore,"                                                    \
	"badDateOverflow=ignore,nulInCommit=ignore,multipleAuthors=ignore,missingTaggerEntry="     \
	"ignore,badTagName=ignore"

/* Those of one repository. */
struct git_objects {
	const char *git_dir;      /* on the host; borrowed */
	const char *prefix;       /* "", "modules/x/"; borrowed */
	struct strv loose, packs; /* paths in the view */
	int64_t until_ms;         /* no call of git takes longer */
};

/* Hands the loose ones to git, which computes their names and refuses all for one that is bad. With
 * a store beside the repository they go there, and nothing is judged. 0, git's exit code, or
 * -errno. */
must_check int objects_hand_over(struct take *t, const struct git_objects *o, const char *store);
/* The same for one pack. */
must_check int objects_hand_over_pack(struct take *t, const struct git_objects *o, const char *path,
				      const char *store);

/* incoming.c: has git look at the pack behind fd in a store of its own, strictly, and then read it
 * into the host's by the words. git writes what it reads before it finds out that a .gitmodules is
 * bad: in the host's store the objects would count as taken over. 0, git's exit code, or -errno. */
must_check int objects_take_pack(struct take *t, const char *git_dir, const char *const *words,
				 int fd, int64_t until_ms);

/* incoming.c: takes over what is good among objects of which git refuses some. */
must_check int take_piecemeal(struct take *t, const struct git_objects *o);

#endif
