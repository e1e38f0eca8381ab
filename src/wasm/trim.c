/*
 * WasmEdge's library without its compiler. In: the bytes of libwasmedge.so as the system has it.
 * Out: the same bytes, changed in place: it does not need libLLVM any more, and what it would call
 * there is weak, so that the loader leaves it empty. Loading LLVM (130 MB, three hundred thousand
 * relocations) is four fifths of the start of a module, and code that was compiled before needs
 * none of it. Nothing moves: an entry leaves the dynamic table, the list of versions skips LLVM's,
 * and symbols of those versions get another binding. A pure function; whoever calls it tries the
 * result before it is used (trial.c), for a library that calls its compiler unasked would end
 * there.
 */
#include <elf.h>
#include <string.h>

#include "wasm/wasm.h"

static const char compiler[] = "libLLVM";

#define ENTRIES_MAX 4096 /* of a list: no library has that many */

struct file {
	uint8_t *bytes;
	size_t n;
	uint64_t dynamic, dynamic_bytes;
	/* places in the file; 0: not there. hash: by either way of hashing */
	uint64_t strings, string_bytes, symbols, versions, needs, hash;
};

static bool get(const struct file *f, uint64_t at, void *ret, size_t n)
{
	if (at > f->n || n > f->n - at)
		return false;
	memcpy(ret, f->bytes + at, n);
	return true;
}

static bool put(const struct file *f, uint64_t at, const void *from, size_t n)
{
	if (at > f->n || n > f->n - at)
		return false;
	memcpy(f->bytes + at, from, n);
	return true;
}

/* Whether the string at an offset of the string table begins with the compiler's name. */
static bool is_compiler(const struct file *f, uint64_t offset)
{
	char name[sizeof(compiler) - 1];

	return offset < f->string_bytes && get(f, f->strings + offset, name, sizeof(name)) &&
	       memcmp(name, compiler, sizeof(name)) == 0;
}

/* Where in the file the loader finds an address; 0: nowhere. */
static uint64_t place(const struct file *f, const Elf64_Ehdr *head, uint64_t address)
{
	for (uint64_t i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr part;

		if (get(f, head->e_phoff + i * sizeof(part), &part, sizeof(part)) &&
		    part.p_type == PT_LOAD && address >= part.p_vaddr &&
		    address - part.p_vaddr < part.p_filesz && part.p_offset <= f->n)
			return part.p_offset + (address - part.p_vaddr);
	}
	return 0;
}

static void note(struct file *f, const Elf64_Ehdr *head, const Elf64_Dyn *entry)
{
	uint64_t at = place(f, head, entry->d_un.d_ptr);

	switch (entry->d_tag) {
	case DT_STRTAB:
		f->strings = at;
		break;
	case DT_STRSZ:
		f->string_bytes = entry->d_un.d_val;
		break;
	case DT_SYMTAB:
		f->symbols = at;
		break;
	case DT_VERSYM:
		f->versions = at;
		break;
	case DT_VERNEED:
		f->needs = at;
		break;
	case DT_HASH:
	case DT_GNU_HASH:
		f->hash = at;
		break;
	default:
		break;
	}
}

static const char *read_head(struct file *f)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;
	Elf64_Dyn entry;

	if (!get(f, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    head.e_type != ET_DYN || head.e_machine != EM_X86_64 ||
	    head.e_phentsize != sizeof(part) || head.e_phnum > ENTRIES_MAX || head.e_phoff > f->n)
		return "not a library for this processor";
	for (uint64_t i = 0; i < head.e_phnum; i++)
		if (get(f, head.e_phoff + i * sizeof(part), &part, sizeof(part)) &&
		    part.p_type == PT_DYNAMIC) {
			f->dynamic = part.p_offset;
			f->dynamic_bytes = part.p_filesz;
		}
	if (!f->dynamic || f->dynamic > f->n || f->dynamic_bytes > f->n - f->dynamic)
		return "it has no dynamic table";
	for (uint64_t at = 0; at + sizeof(entry) <= f->dynamic_bytes; at += sizeof(entry)) {
		if (!get(f, f->dynamic + at, &entry, sizeof(entry)) || entry.d_tag == DT_NULL)
			break;
		note(f, &head, &entry);
	}
	return f->strings && f->symbols && f->versions && f->needs && f->hash
		       ? NULL
		       : "its dynamic table is not as expected";
}

/* Takes the entry that names the compiler's library out of the dynamic table; the rest moves up. */
static const char *drop_library(const struct file *f)
{
	Elf64_Dyn entry;

	for (uint64_t at = 0; at + sizeof(entry) <= f->dynamic_bytes; at += sizeof(entry)) {
		uint8_t *here = f->bytes + f->dynamic + at;

		memcpy(&entry, here, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag != DT_NEEDED || !is_compiler(f, entry.d_un.d_val))
			continue;
		memmove(here, here + sizeof(entry), f->dynamic_bytes - at - sizeof(entry));
		memset(f->bytes + f->dynamic + f->dynamic_bytes - sizeof(entry), 0, sizeof(entry));
		return NULL;
	}
	return "it has no compiler in it";
}

/* The number of the one version that is needed of the compiler's library; 0: there are more, or
 * something is wrong with them. */
static uint16_t read_version(const struct file *f, uint64_t at, const Elf64_Verneed *need)
{
	Elf64_Vernaux version;

	if (need->vn_cnt != 1 || !get(f, at + need->vn_aux, &version, sizeof(version)))
		return 0;
	return version.vna_other & 0x7fff;
}

/* The list of needed versions begins later. */
static bool begin_later(const struct file *f, uint64_t by)
{
	Elf64_Dyn entry;

	for (uint64_t at = 0; by && at + sizeof(entry) <= f->dynamic_bytes &&
			      get(f, f->dynamic + at, &entry, sizeof(entry));
	     at += sizeof(entry)) {
		if (entry.d_tag != DT_VERNEED)
			continue;
		entry.d_un.d_ptr += by;
		return put(f, f->dynamic + at, &entry, sizeof(entry));
	}
	return false;
}

/* The list of needed versions skips the compiler's; *ret_version is its number. */
static const char *drop_versions(const struct file *f, uint16_t *ret_version)
{
	uint64_t at = f->needs, before = 0;
	Elf64_Verneed need, last = { 0 };

	for (size_t i = 0; i < ENTRIES_MAX && get(f, at, &need, sizeof(need)); i++) {
		if (is_compiler(f, need.vn_file)) {
			*ret_version = read_version(f, at, &need);
			last.vn_next = need.vn_next ? last.vn_next + need.vn_next : 0;
			return *ret_version >= 2 && (before ? put(f, before, &last, sizeof(last))
							    : begin_later(f, need.vn_next))
				       ? NULL
				       : "its versions are not as expected";
		}
		if (!need.vn_next)
			break;
		before = at;
		last = need;
		at += need.vn_next;
	}
	return "the compiler's library has no versions";
}

/* How many symbols there are that can be undefined. */
static uint32_t count_symbols(const struct file *f)
{
	uint32_t counts[2]; /* buckets, symbols; by GNU: buckets, the first that is defined */

	return get(f, f->hash, counts, sizeof(counts)) ? counts[1] : 0;
}

static const char *weaken(const struct file *f, uint16_t version)
{
	uint32_t n = count_symbols(f), found = 0;
	const uint16_t any = 1;

	for (uint64_t i = 1; i < n; i++) {
		uint64_t at = f->symbols + i * sizeof(Elf64_Sym);
		Elf64_Sym symbol;
		uint16_t its;

		if (!get(f, f->versions + i * sizeof(its), &its, sizeof(its)) ||
		    !get(f, at, &symbol, sizeof(symbol)))
			return "its symbols are not as expected";
		if ((its & 0x7fff) != version)
			continue;
		if (symbol.st_shndx != SHN_UNDEF)
			return "its symbols are not as expected";
		symbol.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info));
		if (!put(f, at, &symbol, sizeof(symbol)) ||
		    !put(f, f->versions + i * sizeof(its), &any, sizeof(any)))
			return "its symbols are not as expected";
		found++;
	}
	return found ? NULL : "it uses nothing of its compiler";
}

const char *wasm_trim(uint8_t *bytes, size_t n)
{
	struct file f = { .bytes = bytes, .n = n };
	uint16_t version = 0;
	const char *wrong = read_head(&f);

	if (!wrong)
		wrong = drop_library(&f);
	if (!wrong)
		wrong = drop_versions(&f, &version);
	return wrong ? wrong : weaken(&f, version);
}
