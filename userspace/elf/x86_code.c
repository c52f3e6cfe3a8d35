/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opcode maps of the Intel SDM, volume 2, appendix A; XOP of AMD's manual, volume 3.
 *
 * The registers that an instruction writes may be too many, never too few: callers rely on
 * unchanged ones.
 */
#include "elf/x86_code.h"

#include <string.h>

/* ---- the opcode maps ------------------------------------------------------------------------- */

/*
 * The bytes that follow an opcode of one byte; of two, behind 0f. Upper-case letters have a ModRM.
 *
 * . nothing, + the opcode is a prefix, ! it is none
 * b, B 1 byte   w 2 bytes   j 4 bytes   z, Z 4 bytes, 2 with an operand size prefix
 * v mov $…,reg: as z, 8 bytes with REX.W   o 8 bytes, 4 with an address size prefix
 * e enter: 3 bytes   M nothing more   G as B, H as Z, for two of eight
 */
static const char FORMS[2][256 + 1] = {
	{
		"MMMMbz!!MMMMbz!!"
		"MMMMbz!!MMMMbz!!"
		"MMMMbz+!MMMMbz+!"
		"MMMMbz+!MMMMbz+!"
		"!!!!!!!!!!!!!!!!" /* REX */
		"................"
		"!!!M++++zZbB...."
		"bbbbbbbbbbbbbbbb"
		"BZ!BMMMMMMMMMMMM"
		"..........!....."
		"oooo....bz......"
		"bbbbbbbbvvvvvvvv"
		"BBw.!!BZe.w..b!."
		"MMMM!!!.MMMMMMMM"
		"bbbbbbbbjj!b...."
		"+.++..GH......MM",
	},
	{
		"MMMM!.....!.!M.B"
		"MMMMMMMMMMMMMMMM"
		"MMMM!!!!MMMMMMMM"
		"......!!!!!!!!!!"
		"MMMMMMMMMMMMMMMM"
		"MMMMMMMMMMMMMMMM"
		"MMMMMMMMMMMMMMMM"
		"BBBBMMM.MMMMMMMM"
		"jjjjjjjjjjjjjjjj"
		"MMMMMMMMMMMMMMMM"
		"...MBM!!...MBMMM"
		"MMMMMMMMMMBMMMMM"
		"MMBMBBBM........"
		"MMMMMMMMMMMMMMMM"
		"MMMMMMMMMMMMMMMM"
		"MMMMMMMMMMMMMMMM",
	},
};

/* The operands that they write, by the letters of writes_as(); upper-case: operands of one byte. */
static const char WRITES[2][256 + 1] = {
	{
		"RrGgaaaaRrGgaaaa"
		"RrGgaaaaRrGgaaaa"
		"RrGgaaaaRrGgaaaa"
		"RrGgaaaa........"
		"................"
		"........oooooooo"
		"...g.....g.gssss"
		"................"
		"Ii.i..XxRrGgrg.r"
		"nnnnnnnndd.....d"
		"dd..ssss..ssssss"
		"OOOOOOOOoooooooo"
		"Rr....Rr........"
		"RrRr...d.......d"
		"ccc.dd......dd.."
		"......Uu......Vv",
	},
	{
		"eegg.y.........."
		"..............p."
		"rr..........gg.."
		".ttty..........."
		"mmmmmmmmmmmmmmmm"
		"g..............."
		"................"
		"........bb....r."
		"................"
		"zzzzzzzzzzzzzzzz"
		"..t.rr.....rrrfg"
		"Kkgrggggg.rrgggg"
		"Xx...g.qwwwwwwww"
		".......g........"
		"................"
		"................",
	},
};

struct decoder {
	const uint8_t *code;
	size_t size, at;
	bool has_66, has_67, has_f2, has_f3, has_rex;
	bool w, r, x, b;
	uint8_t opcode, map;  /* 0: one byte; 1: 0f; 2: 0f38; 3: 0f3a; 8 to 10: XOP */
	uint8_t vvvv;	      /* of VEX */
	bool is_vex;	      /* VEX, EVEX or XOP */
	uint8_t mod, reg, rm; /* with the bits of prefixes */
	uint8_t base; /* of a memory operand; X86_NO_REGISTER: none, or there is an index, too */
	bool has_modrm;
	int32_t displacement;
	int32_t immediate;
};

static bool take_byte(struct decoder *d, uint8_t *byte)
{
	if (d->at >= d->size || d->at >= X86_SIZE_MAX)
		return false;
	*byte = d->code[d->at++];
	return true;
}

static bool take_signed(struct decoder *d, unsigned int bytes, int32_t *value)
{
	uint32_t low = 0;

	if (bytes > d->size - d->at || d->at + bytes > X86_SIZE_MAX)
		return false;
	if (bytes == 1) {
		*value = (int8_t)d->code[d->at];
	} else if (bytes == 2) {
		*value = (int16_t)(d->code[d->at] | d->code[d->at + 1] << 8);
	} else if (bytes) {
		memcpy(&low, d->code + d->at, 4);
		*value = (int32_t)low;
	}
	d->at += bytes;
	return true;
}

/* ---- prefixes and opcode --------------------------------------------------------------------- */

static bool is_prefix(struct decoder *d, uint8_t byte)
{
	if (FORMS[0][byte] != '+')
		return false;
	d->has_66 |= byte == 0x66;
	d->has_67 |= byte == 0x67;
	d->has_f2 |= byte == 0xf2;
	d->has_f3 |= byte == 0xf3;
	return true;
}

static bool take_vex(struct decoder *d, uint8_t first)
{
	uint8_t p0, p1, p2;

	d->is_vex = true;
	if (!take_byte(d, &p0))
		return false;
	d->r = !(p0 & 0x80);
	if (first == 0xc5) {
		d->map = 1;
		d->vvvv = ~p0 >> 3 & 15;
		return take_byte(d, &d->opcode);
	}
	d->x = !(p0 & 0x40);
	d->b = !(p0 & 0x20);
	d->map = first == 0x62 ? p0 & 7 : p0 & 31;
	if (!take_byte(d, &p1) || (first == 0x62 && !take_byte(d, &p2)))
		return false;
	d->w = p1 & 0x80;
	d->vvvv = ~p1 >> 3 & 15;
	return take_byte(d, &d->opcode);
}

static bool take_opcode(struct decoder *d)
{
	uint8_t byte;

	do {
		if (!take_byte(d, &byte))
			return false;
	} while (is_prefix(d, byte));
	if ((byte & 0xf0) == 0x40) {
		d->has_rex = true;
		d->w = byte & 8;
		d->r = byte & 4;
		d->x = byte & 2;
		d->b = byte & 1;
		if (!take_byte(d, &byte))
			return false;
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62 ||
	    (byte == 0x8f && d->at < d->size && (d->code[d->at] & 31) >= 8))
		return take_vex(d, byte);
	if (byte == 0x0f) {
		if (!take_byte(d, &byte))
			return false;
		d->map = 1;
		if (byte == 0x38 || byte == 0x3a) {
			d->map = byte == 0x38 ? 2 : 3;
			if (!take_byte(d, &byte))
				return false;
		}
	}
	d->opcode = byte;
	return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

static char form_of_vex_0f(uint8_t o)
{
	if (o == 0x77)
		return '.';
	return (o >= 0x70 && o <= 0x73) || o == 0xc2 || (o >= 0xc4 && o <= 0xc6) ? 'B' : 'M';
}

static char form_of(const struct decoder *d)
{
	switch (d->map) {
	case 0:
		return d->is_vex ? '!' : FORMS[0][d->opcode];
	case 1:
		if (d->is_vex)
			return form_of_vex_0f(d->opcode);
		return d->opcode == 0x78 && (d->has_66 || d->has_f2) ? '!' : FORMS[1][d->opcode];
	case 2:
	case 5: /* half precision, as 6 */
	case 6:
	case 9:
		return 'M';
	case 3:
	case 8:
		return 'B';
	case 10:
		return 'Z';
	default:
		return '!';
	}
}

static bool take_modrm(struct decoder *d)
{
	unsigned int bytes = 0;
	uint8_t modrm, sib;

	if (!take_byte(d, &modrm))
		return false;
	d->has_modrm = true;
	d->mod = modrm >> 6;
	d->reg = (modrm >> 3 & 7) | d->r << 3;
	d->rm = (modrm & 7) | d->b << 3;
	d->base = X86_NO_REGISTER;
	if (d->mod == 3)
		return true;
	bytes = d->mod == 1 ? 1 : d->mod == 2 ? 4 : 0;
	if ((modrm & 7) == 4) {
		if (!take_byte(d, &sib))
			return false;
		if ((sib & 7) == 5 && !d->mod)
			bytes = 4;
		else if ((sib >> 3 & 7) == 4 && !d->x)
			d->base = (sib & 7) | d->b << 3;
	} else if ((modrm & 7) == 5 && !d->mod) {
		bytes = 4;
	} else {
		d->base = d->rm;
	}
	return take_signed(d, bytes, &d->displacement);
}

static unsigned int size_of_z(const struct decoder *d)
{
	return d->has_66 && !d->w ? 2 : 4;
}

static bool take_operands(struct decoder *d)
{
	char form = form_of(d);
	int32_t ignored;

	if (form >= 'A' && form <= 'Z' && !take_modrm(d))
		return false;
	switch (form) {
	case '.':
	case 'M':
		return true;
	case 'b':
	case 'B':
		return take_signed(d, 1, &d->immediate);
	case 'w':
		return take_signed(d, 2, &d->immediate);
	case 'j':
		return take_signed(d, 4, &d->immediate);
	case 'z':
	case 'Z':
		return take_signed(d, size_of_z(d), &d->immediate);
	case 'v':
		return take_signed(d, size_of_z(d), &d->immediate) &&
		       (!d->w || take_signed(d, 4, &ignored));
	case 'o':
		return take_signed(d, 4, &ignored) && (d->has_67 || take_signed(d, 4, &ignored));
	case 'e':
		return take_signed(d, 2, &d->immediate) && take_signed(d, 1, &ignored);
	case 'G':
		return (d->reg & 7) > 1 || take_signed(d, 1, &d->immediate);
	case 'H':
		return (d->reg & 7) > 1 || take_signed(d, size_of_z(d), &d->immediate);
	default:
		return false;
	}
}

/* ---- what it writes to ----------------------------------------------------------------------- */

static uint16_t register_bit(uint8_t number)
{
	return 1u << (number & 15);
}

/* Of an operand of one byte: 4 to 7 are the second bytes of 0 to 3. */
static uint16_t byte_bit(const struct decoder *d, uint8_t number)
{
	return register_bit(number >= 4 && number < 8 && !d->has_rex ? number & 3 : number);
}

static uint16_t rm_bit(const struct decoder *d, bool is_byte)
{
	if (!d->has_modrm || d->mod != 3)
		return 0;
	return is_byte ? byte_bit(d, d->rm) : register_bit(d->rm);
}

static uint16_t reg_bit(const struct decoder *d, bool is_byte)
{
	return is_byte ? byte_bit(d, d->reg) : register_bit(d->reg);
}

#define RAX   1u
#define RCX   2u
#define RDX   4u
#define RBX   8u
#define RSI   0x40u
#define RDI   0x80u
#define R11   0x800u
#define EVERY 0xffffu

/* By a letter of WRITES. */
static uint16_t writes_as(const struct decoder *d, char letter)
{
	bool is_byte = letter >= 'A' && letter <= 'Z';
	uint16_t rm = rm_bit(d, is_byte), reg = reg_bit(d, is_byte);
	uint8_t group = d->reg & 7, number = (d->opcode & 7) | d->b << 3;

	switch (is_byte ? letter - 'A' + 'a' : letter) {
	case 'r':
		return rm;
	case 'g':
		return reg;
	case 'x':
		return rm | reg;
	case 'o': /* the register is in the opcode */
		return is_byte ? byte_bit(d, number) : register_bit(number);
	case 'w':
		return d->is_vex ? 0 : register_bit(number);
	case 'n': /* xchg with rax, and nop */
		return d->opcode == 0x90 && !d->b ? 0 : RAX | register_bit(number);
	case 'i': /* all but cmp */
		return group == 7 ? 0 : rm;
	case 'u': /* test, not and neg, mul and div */
		return group < 2 ? 0 : group < 4 ? rm : RAX | RDX;
	case 'v': /* inc, dec */
		return group < 2 ? rm : 0;
	case 'k':
		return rm | RAX;
	case 'q':
		return rm | RAX | RDX;
	case 'f': /* rdfsbase */
		return d->has_f3 ? rm : 0;
	case 'p': /* rdssp */
		return d->has_f3 && group == 1 ? rm : 0;
	case 'm': /* cmov */
		return d->is_vex ? 0 : reg;
	case 'z': /* setcc; VEX: kmov */
		return d->is_vex ? rm | reg : rm_bit(d, true);
	case 'b': /* vmread, vmwrite; EVEX: vcvt… */
		return d->is_vex ? reg : 0;
	case 'a':
		return RAX;
	case 'c':
		return RCX;
	case 'd':
		return RAX | RDX;
	case 's':
		return RAX | RCX | RSI | RDI;
	case 't':
		return RAX | RBX | RCX | RDX;
	case 'y':
		return RAX | RCX | R11;
	case 'e':
		return EVERY & ~register_bit(X86_RSP);
	default:
		return 0;
	}
}

static uint16_t writes_of(const struct decoder *d)
{
	uint8_t o = d->opcode;

	switch (d->map) {
	case 0:
	case 1:
		return writes_as(d, WRITES[d->map][o]);
	case 2:
		/* cmpccxadd; andn, blsr, bzhi, pext, pdep, mulx, bextr, shlx; evex: some more */
		if (d->is_vex)
			return o >= 0xe0 ? reg_bit(d, false) | register_bit(d->vvvv) : 0;
		return o >= 0xf0 || o == 0x82 ? reg_bit(d, false) : 0;
	case 3:
		if (o >= 0x14 && o <= 0x17)
			return rm_bit(d, false);
		if (o >= 0x60 && o <= 0x63)
			return RCX;
		return d->is_vex && o == 0xf0 ? reg_bit(d, false) : 0;
	case 9:
	case 10:
		return reg_bit(d, false) | register_bit(d->vvvv);
	case 5:
		return o == 0x2c || o == 0x2d || o == 0x78 || o == 0x79 ? reg_bit(d, false)
		       : o == 0x7e					? rm_bit(d, false)
									: 0;
	default:
		return 0;
	}
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void set_effect(struct x86_instruction *i, enum x86_effect effect, uint8_t reg,
		       int32_t amount)
{
	i->effect = effect;
	i->reg = reg;
	i->amount = amount;
}

/* Of 64 bits, at rsp + displacement. */
static bool is_on_stack(const struct decoder *d)
{
	return d->w && d->mod != 3 && d->base == X86_RSP;
}

static bool is_load_of_frame_pointer(const struct decoder *d)
{
	return d->opcode == 0x8b && d->w && !d->has_67 && d->mod != 3 && d->reg == X86_RBP &&
	       d->base == X86_RBP && !d->displacement;
}

/* mov to `to`, from `from` */
static void move_register(struct x86_instruction *i, uint8_t to, uint8_t from)
{
	if (to == X86_RSP && from != X86_RSP)
		set_effect(i, X86_SET_SP, from, 0);
	else if (from == X86_RSP && to != X86_RSP)
		set_effect(i, X86_COPY_SP, to, 0);
}

static void effect_of_mov(const struct decoder *d, struct x86_instruction *i)
{
	if (d->opcode == 0x89 && is_on_stack(d))
		set_effect(i, X86_STORE, d->reg, d->displacement);
	else if (d->opcode == 0x8b && is_on_stack(d))
		set_effect(i, d->reg == X86_RSP ? X86_LOAD_SP : X86_LOAD, d->reg, d->displacement);
	else if (is_load_of_frame_pointer(d))
		set_effect(i, X86_LOAD_FP, X86_RBP, 0);
	else if (d->w && d->mod == 3 && d->opcode == 0x89)
		move_register(i, d->rm, d->reg);
	else if (d->w && d->mod == 3 && d->opcode == 0x8b)
		move_register(i, d->reg, d->rm);
}

static void effect_of_lea(const struct decoder *d, struct x86_instruction *i)
{
	if (!d->w || d->has_67 || d->mod == 3 || d->base == X86_NO_REGISTER)
		return;
	if (d->reg == X86_RSP && d->base == X86_RSP)
		set_effect(i, X86_ADD_SP, 0, d->displacement);
	else if (d->reg == X86_RSP)
		set_effect(i, X86_SET_SP, d->base, d->displacement);
	else if (d->base == X86_RSP)
		set_effect(i, X86_COPY_SP, d->reg, d->displacement);
}

static void effect_of_immediate(const struct decoder *d, struct x86_instruction *i)
{
	if (!d->w || d->mod != 3 || d->rm != X86_RSP || d->opcode == 0x80)
		return;
	if ((d->reg & 7) == 0)
		set_effect(i, X86_ADD_SP, 0, d->immediate);
	else if ((d->reg & 7) == 5 && d->immediate != INT32_MIN)
		set_effect(i, X86_ADD_SP, 0, -d->immediate);
}

static void effect_of_group5(const struct decoder *d, struct x86_instruction *i)
{
	switch (d->reg & 7) {
	case 2:
		set_effect(i, X86_CALL, 0, 0);
		break;
	case 3:
	case 7:
		set_effect(i, X86_LOSE_SP, 0, 0);
		break;
	case 4:
	case 5:
		set_effect(i, X86_JUMP_AWAY, 0, 0);
		break;
	case 6:
		set_effect(i, d->has_66 ? X86_LOSE_SP : X86_PUSH, X86_NO_REGISTER, 0);
		break;
	}
}

static void effect_of_stack_word(const struct decoder *d, struct x86_instruction *i)
{
	uint8_t o = d->opcode, number = (o & 7) | d->b << 3;

	if (d->has_66)
		set_effect(i, X86_LOSE_SP, 0, 0);
	else if (o >= 0x50 && o < 0x58)
		set_effect(i, X86_PUSH, number, 0);
	else if (o >= 0x58 && o < 0x60)
		set_effect(i, number == X86_RSP ? X86_LOSE_SP : X86_POP, number, 0);
	else if (o == 0x68 || o == 0x6a || o == 0x9c)
		set_effect(i, X86_PUSH, X86_NO_REGISTER, 0);
	else if (o == 0x8f && d->mod == 3)
		set_effect(i, d->rm == X86_RSP ? X86_LOSE_SP : X86_POP, d->rm, 0);
	else
		set_effect(i, X86_POP, X86_NO_REGISTER, 0);
}

static void effect_one_byte(const struct decoder *d, struct x86_instruction *i)
{
	uint8_t o = d->opcode;

	if ((o >= 0x50 && o < 0x60) || o == 0x68 || o == 0x6a || o == 0x8f || o == 0x9c ||
	    o == 0x9d) {
		effect_of_stack_word(d, i);
		return;
	}
	if ((o >= 0x70 && o < 0x80) || (o >= 0xe0 && o < 0xe4)) {
		set_effect(i, X86_BRANCH, 0, d->immediate);
		return;
	}
	switch (o) {
	case 0x80:
	case 0x81:
	case 0x83:
		effect_of_immediate(d, i);
		break;
	case 0x89:
	case 0x8b:
		effect_of_mov(d, i);
		break;
	case 0x8d:
		effect_of_lea(d, i);
		break;
	case 0x90:
		if (!d->b)
			set_effect(i, X86_PADDING, 0, 0);
		break;
	case 0xc2:
	case 0xc3:
		set_effect(i, X86_RETURN, 0, 0);
		break;
	case 0xc7: /* xbegin goes elsewhere when it fails */
		if (d->mod == 3 && (d->reg & 7) == 7)
			set_effect(i, X86_LOSE_SP, 0, 0);
		break;
	case 0xc8:
		set_effect(i, X86_LOSE_SP, 0, 0);
		break;
	case 0xc9:
		set_effect(i, d->has_66 ? X86_LOSE_SP : X86_LEAVE, 0, 0);
		break;
	case 0xca:
	case 0xcb:
	case 0xcf:
	case 0xf4:
	case 0xcc:
		set_effect(i, X86_STOP, 0, 0);
		break;
	case 0xe8: /* to the next instruction: for its address */
		if (d->immediate)
			set_effect(i, X86_CALL, 0, d->immediate);
		else
			set_effect(i, X86_PUSH, X86_NO_REGISTER, 0);
		break;
	case 0xe9:
	case 0xeb:
		set_effect(i, X86_JUMP, 0, d->immediate);
		break;
	case 0xff:
		effect_of_group5(d, i);
		break;
	}
}

static void effect_0f(const struct decoder *d, struct x86_instruction *i)
{
	uint8_t o = d->opcode;

	if (d->is_vex)
		return;
	if (o >= 0x80 && o < 0x90)
		set_effect(i, X86_BRANCH, 0, d->immediate);
	else if (o == 0x0b || o == 0x07 || o == 0x35 || o == 0xb9 || o == 0xff || o == 0xaa)
		set_effect(i, X86_STOP, 0, 0);
	else if (o == 0xa0 || o == 0xa8)
		set_effect(i, X86_PUSH, X86_NO_REGISTER, 0);
	else if (o == 0xa1 || o == 0xa9)
		set_effect(i, X86_POP, X86_NO_REGISTER, 0);
	else if (o == 0x1f)
		set_effect(i, X86_PADDING, 0, 0);
}

static bool sets_stack_pointer(enum x86_effect effect)
{
	return effect == X86_PUSH || effect == X86_POP || effect == X86_ADD_SP ||
	       effect == X86_SET_SP || effect == X86_LOAD_SP || effect == X86_LEAVE;
}

bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *i)
{
	struct decoder d = {.code = code, .size = size, .base = X86_NO_REGISTER};

	*i = (struct x86_instruction){.reg = X86_NO_REGISTER};
	if (!take_opcode(&d) || !take_operands(&d))
		return false;
	i->size = d.at;
	i->writes = writes_of(&d);
	if (d.map == 0)
		effect_one_byte(&d, i);
	else if (d.map == 1)
		effect_0f(&d, i);
	if (i->writes & register_bit(X86_RSP)) {
		i->writes &= ~register_bit(X86_RSP);
		if (!sets_stack_pointer(i->effect))
			set_effect(i, X86_LOSE_SP, 0, 0);
	}
	if (i->effect == X86_LEAVE)
		i->writes |= register_bit(X86_RBP);
	return true;
}
