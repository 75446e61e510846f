// The library of scalar rules. Exact rows hold bit for bit, in f64 and in f32 arithmetic, for every special value;
// real rows over the reals with inf and nan. rules_test.cc checks each row at its claim. No row makes an expression
// larger, and a later row never undoes an earlier one.
#include "lemma/scalar/rule.h"

namespace lemma::scalar {
namespace {

constexpr Claim kExact = Claim::Exact;
constexpr Claim kReal = Claim::Real;

constexpr Rule kRules[] = {
    // Zero and one. x + 0 is not x bit for bit: -0 + 0 is 0.
    {"mul_one", "?a * 1", "?a", "", kExact},
    {"div_one", "?a / 1", "?a", "", kExact},
    {"sub_zero", "?a - 0", "?a", "", kExact},
    {"add_negative_zero", "?a + -0.0", "?a", "a:float", kExact},
    {"add_zero", "?a + 0", "?a", "a:whole", kExact},
    {"add_zero_float", "?a + 0", "?a", "a:float", kReal},
    {"mul_zero", "?a * 0", "0", "a:whole", kExact},
    {"sub_self", "?a - ?a", "0", "a:whole", kExact},
    {"zero_sub", "0 - ?a", "-?a", "a:whole", kExact},
    {"zero_sub_float", "0 - ?a", "-?a", "a:float", kReal},
    {"negative_zero_sub", "-0.0 - ?a", "-?a", "a:float", kExact},
    {"mul_minus_one", "?a * -1", "-?a", "a:number", kExact},
    {"div_minus_one", "?a / -1", "-?a", "", kExact},

    // Signs.
    {"neg_neg", "-(-?a)", "?a", "", kExact},
    {"add_neg", "?a + -?b", "?a - ?b", "a:number", kExact},
    {"sub_neg", "?a - -?b", "?a + ?b", "a:number", kExact},
    {"neg_sub", "-(?a - ?b)", "?b - ?a", "a:int", kExact},
    {"neg_sub_float", "-(?a - ?b)", "?b - ?a", "a:float", kReal},
    {"mul_neg_neg", "-?a * -?b", "?a * ?b", "a:number", kExact},
    {"div_neg_neg", "-?a / -?b", "?a / ?b", "", kExact},
    {"mul_neg_const", "-?a * ?c", "?a * -?c", "a:number c:const", kExact},
    {"abs_neg", "abs(-?a)", "abs(?a)", "a:signed", kExact},
    {"abs_abs", "abs(abs(?a))", "abs(?a)", "", kExact},
    {"abs_square", "abs(?a * ?a)", "?a * ?a", "a:float", kExact},
    {"square_abs", "abs(?a) * abs(?a)", "?a * ?a", "a:number", kExact},

    // Quotients. A division by a power of two is a multiplication.
    {"one_div", "1 / ?a", "recip(?a)", "", kExact},
    {"div_power_of_two", "?a / ?c", "?a * recip(?c)", "c:power_of_two", kExact},
    {"recip_recip", "recip(recip(?a))", "?a", "", kReal},
    {"mul_recip", "?a * recip(?b)", "?a / ?b", "", kReal},
    {"div_recip", "?a / recip(?b)", "?a * ?b", "", kReal},
    {"recip_div", "recip(?a / ?b)", "?b / ?a", "", kReal},
    {"recip_neg", "recip(-?a)", "-recip(?a)", "", kExact},
    {"mul_consts", "(?a * ?c) * ?d", "?a * (?c * ?d)", "c:moderate d:moderate", kReal},
    {"div_consts", "(?a / ?c) * ?d", "?a * (?d / ?c)", "c:moderate d:moderate", kReal},
    {"mul_div_consts", "(?a * ?c) / ?d", "?a * (?c / ?d)", "c:moderate d:moderate", kReal},
    {"div_div_consts", "(?a / ?c) / ?d", "?a / (?c * ?d)", "c:moderate d:moderate", kReal},

    // Roots, powers, exponentials.
    {"recip_sqrt", "recip(sqrt(?a))", "rsqrt(?a)", "", kReal},
    {"recip_rsqrt", "recip(rsqrt(?a))", "sqrt(?a)", "", kReal},
    {"div_sqrt", "?a / sqrt(?b)", "?a * rsqrt(?b)", "", kReal},
    {"div_rsqrt", "?a / rsqrt(?b)", "?a * sqrt(?b)", "", kReal},
    {"sqrt_square", "sqrt(?a * ?a)", "abs(?a)", "", kReal},
    {"pow_zero", "pow(?a, 0)", "1", "", kExact},
    {"pow_one", "pow(?a, 1)", "?a", "", kExact},
    {"pow_two", "pow(?a, 2)", "?a * ?a", "a:float", kReal},
    {"pow_two_int", "pow(?a, 2)", "?a * ?a", "a:int", kExact},
    {"pow_minus_one", "pow(?a, -1)", "recip(?a)", "a:float", kReal},
    {"exp_mul", "exp(?a) * exp(?b)", "exp(?a + ?b)", "", kReal},
    {"exp2_mul", "exp2(?a) * exp2(?b)", "exp2(?a + ?b)", "", kReal},
    {"exp_div", "exp(?a) / exp(?b)", "exp(?a - ?b)", "", kReal},
    {"recip_exp", "recip(exp(?a))", "exp(-?a)", "", kReal},
    {"log_exp", "log(exp(?a))", "?a", "", kReal},
    {"log2_exp2", "log2(exp2(?a))", "?a", "", kReal},
    {"floor_floor", "floor(floor(?a))", "floor(?a)", "", kExact},
    {"floor_round", "floor(round(?a))", "round(?a)", "", kExact},
    {"round_floor", "round(floor(?a))", "floor(?a)", "", kExact},
    {"round_round", "round(round(?a))", "round(?a)", "", kExact},
    {"floor_whole", "floor(?a)", "?a", "a:whole", kExact},
    {"round_whole", "round(?a)", "?a", "a:whole", kExact},

    // Integers.
    {"floordiv_one", "?a // 1", "?a", "a:whole", kExact},
    {"floordiv_zero", "?a // 0", "0", "a:whole", kExact},
    {"zero_floordiv", "0 // ?a", "0", "a:whole", kExact},
    {"mod_one", "?a % 1", "0", "a:whole", kExact},
    {"mod_zero", "?a % 0", "0", "a:whole", kExact},
    {"zero_mod", "0 % ?a", "0", "a:whole", kExact},
    {"mod_self", "?a % ?a", "0", "a:whole", kExact},
    {"mod_mod", "(?a % ?b) % ?b", "?a % ?b", "a:whole", kExact},
    {"add_consts", "(?a + ?c) + ?d", "?a + (?c + ?d)", "a:int c:const d:const", kExact},
    {"sub_add_consts", "(?a - ?c) + ?d", "?a + (?d - ?c)", "a:int c:const d:const", kExact},
    {"add_sub_consts", "(?a + ?c) - ?d", "?a + (?c - ?d)", "a:int c:const d:const", kExact},
    {"sub_sub_consts", "(?a - ?c) - ?d", "?a - (?c + ?d)", "a:int c:const d:const", kExact},
    {"mul_consts_int", "(?a * ?c) * ?d", "?a * (?c * ?d)", "a:int c:const d:const", kExact},
    {"add_sub_same", "(?a + ?b) - ?b", "?a", "a:int", kExact},
    {"sub_add_same", "(?a - ?b) + ?b", "?a", "a:int", kExact},
    {"shl_zero", "shl(?a, 0)", "?a", "", kExact},
    {"shr_zero", "shr(?a, 0)", "?a", "", kExact},

    // Bits and truth; And, Or, Xor and Not are bitwise on integers.
    {"not_not", "not(not(?a))", "?a", "", kExact},
    {"and_same", "and(?a, ?a)", "?a", "", kExact},
    {"or_same", "or(?a, ?a)", "?a", "", kExact},
    {"xor_same", "xor(?a, ?a)", "0", "", kExact},
    {"and_zero", "and(?a, 0)", "0", "", kExact},
    {"or_zero", "or(?a, 0)", "?a", "", kExact},
    {"xor_zero", "xor(?a, 0)", "?a", "", kExact},
    {"and_true", "and(?a, true)", "?a", "", kExact},
    {"or_true", "or(?a, true)", "true", "", kExact},
    {"xor_true", "xor(?a, true)", "not(?a)", "", kExact},
    {"and_ones", "and(?a, -1)", "?a", "a:int", kExact},
    {"or_ones", "or(?a, -1)", "-1", "a:int", kExact},
    {"and_not", "and(?a, not(?a))", "0", "", kExact},
    {"or_not", "or(?a, not(?a))", "true", "a:bool", kExact},
    {"and_or", "and(?a, or(?a, ?b))", "?a", "", kExact},
    {"or_and", "or(?a, and(?a, ?b))", "?a", "", kExact},
    {"and_and", "and(?a, and(?a, ?b))", "and(?a, ?b)", "", kExact},
    {"or_or", "or(?a, or(?a, ?b))", "or(?a, ?b)", "", kExact},
    {"or_and_not", "or(?a, and(not(?a), ?b))", "or(?a, ?b)", "", kExact},
    {"and_or_not", "and(?a, or(not(?a), ?b))", "and(?a, ?b)", "", kExact},

    // Comparisons; those of floats are false where nan stands.
    {"eq_self", "?a == ?a", "true", "a:whole", kExact},
    {"ne_self", "?a != ?a", "false", "a:whole", kExact},
    {"lt_self", "?a < ?a", "false", "", kExact},
    {"le_self", "?a <= ?a", "true", "a:whole", kExact},
    {"eq_true", "?a == true", "?a", "", kExact},
    {"eq_false", "?a == false", "not(?a)", "", kExact},
    {"ne_true", "?a != true", "not(?a)", "", kExact},
    {"ne_false", "?a != false", "?a", "", kExact},
    {"not_eq", "not(?a == ?b)", "?a != ?b", "", kExact},
    {"not_ne", "not(?a != ?b)", "?a == ?b", "", kExact},
    {"not_lt", "not(?a < ?b)", "?b <= ?a", "a:whole", kExact},
    {"not_le", "not(?a <= ?b)", "?b < ?a", "a:whole", kExact},
    {"lt_infinity", "inf < ?a", "false", "", kExact},
    {"lt_minus_infinity", "?a < -inf", "false", "", kExact},

    // Least and greatest; nan wins in both.
    {"min_same", "min(?a, ?a)", "?a", "", kExact},
    {"max_same", "max(?a, ?a)", "?a", "", kExact},
    {"min_infinity", "min(?a, inf)", "?a", "", kExact},
    {"max_minus_infinity", "max(?a, -inf)", "?a", "", kExact},
    {"min_min", "min(?a, min(?a, ?b))", "min(?a, ?b)", "", kExact},
    {"max_max", "max(?a, max(?a, ?b))", "max(?a, ?b)", "", kExact},
    {"min_max", "min(?a, max(?a, ?b))", "?a", "a:whole", kExact},
    {"max_min", "max(?a, min(?a, ?b))", "?a", "a:whole", kExact},
    {"min_consts", "min(min(?a, ?c), ?d)", "min(?a, min(?c, ?d))", "c:const d:const", kExact},
    {"max_consts", "max(max(?a, ?c), ?d)", "max(?a, max(?c, ?d))", "c:const d:const", kExact},
    {"max_neg", "max(-?a, -?b)", "-min(?a, ?b)", "a:float", kExact},
    {"min_neg", "min(-?a, -?b)", "-max(?a, ?b)", "a:float", kExact},

    // Choices.
    {"select_true", "select(true, ?a, ?b)", "?a", "", kExact},
    {"select_false", "select(false, ?a, ?b)", "?b", "", kExact},
    {"select_same", "select(?c, ?a, ?a)", "?a", "", kExact},
    {"select_not", "select(not(?c), ?a, ?b)", "select(?c, ?b, ?a)", "", kExact},
    {"select_true_false", "select(?c, true, false)", "?c", "", kExact},
    {"select_false_true", "select(?c, false, true)", "not(?c)", "", kExact},
    {"select_true_b", "select(?c, true, ?b)", "or(?c, ?b)", "", kExact},
    {"select_b_false", "select(?c, ?b, false)", "and(?c, ?b)", "", kExact},
    {"select_false_b", "select(?c, false, ?b)", "and(not(?c), ?b)", "", kExact},
    {"select_b_true", "select(?c, ?b, true)", "or(not(?c), ?b)", "", kExact},
    {"select_then_again", "select(?c, select(?c, ?a, ?b), ?d)", "select(?c, ?a, ?d)", "", kExact},
    {"select_else_again", "select(?c, ?a, select(?c, ?b, ?d))", "select(?c, ?a, ?d)", "", kExact},
    {"select_and", "select(?c, select(?d, ?a, ?b), ?b)", "select(and(?c, ?d), ?a, ?b)", "", kExact},
    {"select_or", "select(?c, ?a, select(?d, ?a, ?b))", "select(or(?c, ?d), ?a, ?b)", "", kExact},

    // Conversions.
    {"cast_cast", "cast(cast(?a))", "cast(?a)", "value_kept", kExact},
    {"round_to_again", "round_to(round_to(?a))", "round_to(?a)", "same_type", kExact},
};

}  // namespace

std::span<const Rule> library_rules() { return kRules; }

}  // namespace lemma::scalar
