// The main function of each benchmark program; THALIA_SUBJECT is the namespace of what it measures.
#include "subject.h"

namespace thalia::bench::THALIA_SUBJECT {
AddSubject add_subject;
}

int main(int argc, char** argv) {
  return thalia::bench::run_subject(argc, argv, thalia::bench::THALIA_SUBJECT::add_subject);
}
