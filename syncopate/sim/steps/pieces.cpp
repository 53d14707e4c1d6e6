#include "syncopate/sim/steps/pieces.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "syncopate/base/error.h"

namespace syncopate::sim {
namespace {

Matrix matrix_of(const ParameterProfile& parameter) {
  if (parameter.shape.size() < 2 || parameter.elements() == 0) return {};
  return {parameter.shape.front(), parameter.elements() / parameter.shape.front()};
}

void add_matrix(Piece& piece, const ParameterProfile& parameter) {
  if (const Matrix matrix = matrix_of(parameter); matrix.rows > 0) piece.matrices.push_back(matrix);
}

}  // namespace

int64_t laid_out(const ParameterProfile& parameter) { return (parameter.elements() + 15) / 16 * 16; }

Piece piece_of(const ParameterProfile& parameter) {
  Piece piece{.elements = parameter.elements()};
  add_matrix(piece, parameter);
  return piece;
}

void append(Piece& piece, const ParameterProfile& parameter) {
  piece.elements += laid_out(parameter);
  add_matrix(piece, parameter);
}

Piece whole_model(const Profile& profile) {
  Piece whole;
  for (const ParameterProfile& parameter : profile.parameters) append(whole, parameter);
  return whole;
}

std::vector<Piece> cut_model(const Profile& profile, int64_t parts) {
  const auto& parameters = profile.parameters;
  const auto count = static_cast<int64_t>(parameters.size());
  if (parts > count)
    throw ConfigError("fragments must be at most the model's {} parameter tensors, got {}", count, parts);
  std::vector<int64_t> edge{0};
  for (const ParameterProfile& parameter : parameters) edge.push_back(edge.back() + laid_out(parameter));
  const auto off = [&](int64_t place, int64_t ideal) {
    return std::abs(edge[static_cast<size_t>(place)] - ideal);
  };
  std::vector<Piece> pieces;
  for (int64_t i = 0, first = 0; i < parts; ++i) {
    const int64_t ideal = edge.back() / parts * (i + 1), latest = count - (parts - i - 1);
    int64_t last = i + 1 == parts ? count : first + 1;
    while (last < latest && off(last + 1, ideal) <= off(last, ideal)) ++last;
    Piece piece;
    for (; first < last; ++first) append(piece, parameters[static_cast<size_t>(first)]);
    piece.elements = std::max<int64_t>(1, piece.elements);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

bool is_table(const ParameterProfile& parameter) { return parameter.rows > 0 && parameter.shape.size() == 2; }

// Words repeat: of twice the text, less than twice as many are new (docs/advice.md).
double rows_read(const ParameterProfile& parameter, const Profile& profile, double examples) {
  constexpr double kGrowth = 0.7;
  const auto measured_on = static_cast<double>(profile.times[profile.times.size() / 2].batch);
  const double rows = parameter.rows * measured_on * std::pow(examples / measured_on, kGrowth);
  return std::min(rows, static_cast<double>(parameter.shape.front()));
}

}  // namespace syncopate::sim
