// Saves that are killed, over and over.
#pragma once

namespace thalia::test {

/// A child saves two files in turn over one path until it is killed after a random time, `kills`
/// times over. BOOST_TESTs each time that the file is one of the two, whole, and that no more than
/// one temporary came to be.
void check_random_kills(int kills);

}  // namespace thalia::test
