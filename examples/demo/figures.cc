#include "demo/figures.h"

#include <fstream>
#include <limits>
#include <stdexcept>

namespace demo {

void Figures::add(const std::string& name, double value) const {
  if (path_.empty()) return;
  std::ofstream out(path_, std::ios::app);
  out.precision(std::numeric_limits<double>::max_digits10);
  out << name << ' ' << value << '\n';
  out.close();
  if (!out) throw std::runtime_error(path_.string() + ": cannot be written");
}

std::map<std::string, double> Figures::read() const {
  std::ifstream in(path_);
  std::map<std::string, double> figures;
  std::string name;
  double value = 0;
  while (in >> name >> value) figures[name] = value;
  if (!in.eof()) throw std::runtime_error(path_.string() + ": cannot be read");
  return figures;
}

}  // namespace demo
