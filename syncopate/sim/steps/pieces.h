#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/sim/profile.h"

// A model's parameters in the arrays that are averaged.
namespace syncopate::sim {

/// A matrix of a piece, for the codec that makes thin ones of it.
struct Matrix {
  int64_t rows = 0, columns = 0;
};

/// Elements that are averaged in one go.
struct Piece {
  int64_t elements = 0;
  std::vector<Matrix> matrices{};

  double fp32_bytes() const { return 4.0 * static_cast<double>(elements); }
};

/// Elements that a tensor takes in a flat array, where each begins at a multiple of some number.
int64_t laid_out(const ParameterProfile& parameter);

/// A tensor by itself.
Piece piece_of(const ParameterProfile& parameter);
/// Lays a tensor out behind a flat piece.
void append(Piece& piece, const ParameterProfile& parameter);

Piece whole_model(const Profile& profile);
/// Between tensors, as parallel::split_between_tensors does it. Throws ConfigError for more parts than
/// tensors.
std::vector<Piece> cut_model(const Profile& profile, int64_t parts);

/// An embedding's table, of which a batch reads some rows.
bool is_table(const ParameterProfile& parameter);
/// Rows of a table that so many examples read together.
double rows_read(const ParameterProfile& parameter, const Profile& profile, double examples);

}  // namespace syncopate::sim
